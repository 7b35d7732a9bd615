-- Whom a mail is for, so that it is not sent any more when the person is no longer told. Null in mails of earlier versions.
-- Whom its notices are for, as in `notices`: taxpayer/7 is all people of that account with enough rights.
ALTER TABLE mails ADD COLUMN scope varchar;
-- The person who gets it: contact/7/9, integrator/3 or operator/1. Null for a post to a chat.
ALTER TABLE mails ADD COLUMN person varchar;
